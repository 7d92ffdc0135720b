import { createGrouping, type GroupingOptions } from '#sonar/platform/grouping.ts';

/** Groups that end when the test says so. */
function opened(changes: Partial<GroupingOptions<string, string>> = {}) {
  const groups: string[][] = [];
  const alone: string[] = [];
  const gates: PromiseWithResolvers<void>[] = [];
  const held = async () => {
    const gate = Promise.withResolvers<void>();
    gates.push(gate);
    await gate.promise;
  };
  const call = createGrouping<string, string>({
    keyOf: (member) => member.charAt(0),
    async together(members) {
      groups.push([...members]);
      await held();
      return members.map((member) => `together ${member}`);
    },
    async alone(member) {
      alone.push(member);
      await held();
      return `alone ${member}`;
    },
    isUnknown: (error) => (error as Error).message === 'unknown',
    maxMembers: 3,
    lanes: 1,
    ...changes,
  });
  return {
    call,
    groups,
    alone,
    /** Lets all that runs end, and what comes after it, until nothing does. */
    finish: async () => {
      for (let gate = gates.shift(); gate !== undefined; gate = gates.shift()) {
        gate.resolve();
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

test('the first goes at once, those that come meanwhile go together, up to the bound', async () => {
  const { call, groups, alone, finish } = opened();
  const outcomes = Promise.all(['a', 'b', 'c', 'd', 'e'].map(call));
  await finish();
  expect(await outcomes).toEqual(['alone a', 'together b', 'together c', 'together d', 'alone e']);
  expect([alone, groups]).toEqual([['a', 'e'], [['b', 'c', 'd']]]);
});

test('of one key there is one in a group, and the order stays', async () => {
  const { call, groups, alone, finish } = opened();
  const outcomes = Promise.all(['a', 'b1', 'b2', 'c', 'b3'].map(call));
  await finish();
  await outcomes;
  expect([alone, groups]).toEqual([['a', 'b2', 'b3'], [['b1', 'c']]]);
});

test('one bad member costs the others nothing: each is run alone and has its own end', async () => {
  const { call, finish } = opened({
    together: () => Promise.reject(new Error('one of them')),
    alone: (member) =>
      member === 'c' ? Promise.reject(new Error('bad member')) : Promise.resolve(`alone ${member}`),
  });
  const outcomes = Promise.allSettled(['a', 'b', 'c', 'd'].map(call));
  await finish();
  expect(await outcomes).toMatchObject([
    { value: 'alone a' },
    { value: 'alone b' },
    { reason: { message: 'bad member' } },
    { value: 'alone d' },
  ]);
});

test('when nobody knows what became of a group, all are told and none is run again', async () => {
  const { call, alone, finish } = opened({ together: () => Promise.reject(new Error('unknown')) });
  const outcomes = Promise.allSettled(['a', 'b', 'c'].map(call));
  await finish();
  expect((await outcomes).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
  expect(alone).toEqual(['a']);
});

test('a member that the group passes over goes alone', async () => {
  const { call, finish } = opened({
    together: (members) => Promise.resolve(members.map((member) => (member === 'b' ? undefined : member))),
  });
  const outcomes = Promise.all(['a', 'b', 'c'].map(call));
  await finish();
  expect(await outcomes).toEqual(['alone a', 'alone b', 'c']);
});

test('no more groups are under way than there are lanes', async () => {
  let running = 0;
  let most = 0;
  const work = async <T>(value: T): Promise<T> => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    return value;
  };
  const call = createGrouping<number, number>({
    keyOf: String,
    together: (members) => work([...members]),
    alone: (member) => work(member),
    isUnknown: () => false,
    maxMembers: 4,
    lanes: 2,
  });
  const members = Array.from({ length: 100 }, (_, index) => index);
  expect(await Promise.all(members.map(call))).toEqual(members);
  expect(most).toBe(2);
});
