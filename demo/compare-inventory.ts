// Whether the inventory is what the servers really offer: nothing missing, nothing that is not there.
import type { InventoryItem } from '#sonar/contracts/inventory-api.ts';
import type { TargetServers } from './target-servers.ts';

/** What differs, a line each; empty when the inventory is right. */
export function inventoryDifferences(
  offered: Pick<TargetServers, 'addresses' | 'services' | 'endpoints'>,
  items: readonly Pick<InventoryItem, 'type' | 'key' | 'fields'>[],
): string[] {
  const expected = [
    ...offered.addresses.map((address) => `address ${address}`),
    ...offered.services.map((service) => `service ${service.address}/tcp/${service.port}`),
    ...offered.endpoints.map((endpoint) => `endpoint ${endpoint.url} ${JSON.stringify(endpoint.title)}`),
  ];
  const found = items.map((item) =>
    item.type === 'endpoint'
      ? `endpoint ${item.key} ${JSON.stringify(item.fields.title)}`
      : `${item.type} ${item.key}`,
  );
  return [
    ...expected.filter((line) => !found.includes(line)).map((line) => `missing: ${line}`),
    ...found.filter((line) => !expected.includes(line)).map((line) => `not offered: ${line}`),
  ];
}
