import type { InventoryItem } from '#sonar/contracts/inventory-api.ts';
import { inventoryDifferences } from '../../../demo/compare-inventory.ts';

const offered = {
  addresses: ['127.0.0.1'],
  services: [{ address: '127.0.0.1', port: 80 }],
  endpoints: [{ url: 'http://127.0.0.1/', title: 'Shop' }],
};
type Item = Pick<InventoryItem, 'type' | 'key' | 'fields'>;
const right: Item[] = [
  { type: 'address', key: '127.0.0.1', fields: {} },
  { type: 'service', key: '127.0.0.1/tcp/80', fields: {} },
  { type: 'endpoint', key: 'http://127.0.0.1/', fields: { title: 'Shop' } },
];

test('the right inventory differs in nothing', () => {
  expect(inventoryDifferences(offered, right)).toEqual([]);
});

test.each<[string, Item[], string[]]>([
  [
    'a missing service',
    right.filter((item) => item.type !== 'service'),
    ['missing: service 127.0.0.1/tcp/80'],
  ],
  [
    'a service that is not there',
    [...right, { type: 'service', key: '127.0.0.1/tcp/81', fields: {} }],
    ['not offered: service 127.0.0.1/tcp/81'],
  ],
  [
    'another title',
    right.map((item) => (item.type === 'endpoint' ? { ...item, fields: { title: 'Other' } } : item)),
    ['missing: endpoint http://127.0.0.1/ "Shop"', 'not offered: endpoint http://127.0.0.1/ "Other"'],
  ],
])('%s is told', (_what, items, differences) => {
  expect(inventoryDifferences(offered, items)).toEqual(differences);
});
