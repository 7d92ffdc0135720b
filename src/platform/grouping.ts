// Calls that arrive together share one piece of work, which costs little more for many than for one. Nobody waits to
// make a group larger: a group is what arrived while the ones before it were under way.

export interface GroupingOptions<Member, Outcome> {
  /** Members with the same key are never in one group. */
  keyOf: (member: Member) => string;
  /** Outcomes in the order of the members; undefined for one that has to go alone. A throw undid all of it. */
  together: (members: readonly Member[]) => Promise<(Outcome | undefined)[]>;
  alone: (member: Member) => Promise<Outcome>;
  /** Whether nobody knows what became of a group that threw: then all are told so, and none is run again. */
  isUnknown: (error: unknown) => boolean;
  maxMembers: number;
  /** Groups under way at the same time. */
  lanes: number;
}

interface Waiting<Member, Outcome> {
  member: Member;
  key: string;
  resolve: (outcome: Outcome) => void;
  reject: (error: unknown) => void;
}

/** The returned call has the outcome, or the fault, that the member would have alone. */
export function createGrouping<Member, Outcome>(
  options: GroupingOptions<Member, Outcome>,
): (member: Member) => Promise<Outcome> {
  const { keyOf, together, alone, isUnknown, maxMembers, lanes } = options;
  let waiting: Waiting<Member, Outcome>[] = [];
  let running = 0;

  /** The oldest that may go together; the others keep their order. */
  function nextGroup(): Waiting<Member, Outcome>[] {
    const keys = new Set<string>();
    const group: Waiting<Member, Outcome>[] = [];
    const left: Waiting<Member, Outcome>[] = [];
    for (const one of waiting) {
      const fits = group.length < maxMembers && !keys.has(one.key);
      if (fits) keys.add(one.key);
      (fits ? group : left).push(one);
    }
    waiting = left;
    return group;
  }

  function start(): void {
    while (running < lanes && waiting.length > 0) {
      running += 1;
      void run(nextGroup()).finally(() => {
        running -= 1;
        start();
      });
    }
  }

  const runAlone = (one: Waiting<Member, Outcome>): Promise<void> =>
    alone(one.member).then(one.resolve, one.reject);

  async function run(group: readonly Waiting<Member, Outcome>[]): Promise<void> {
    const [only] = group;
    if (group.length === 1 && only !== undefined) return runAlone(only);
    let outcomes: (Outcome | undefined)[];
    try {
      outcomes = await together(group.map(({ member }) => member));
    } catch (error) {
      if (isUnknown(error)) for (const one of group) one.reject(error);
      else await Promise.all(group.map(runAlone));
      return;
    }
    const left: Waiting<Member, Outcome>[] = [];
    for (const [index, one] of group.entries()) {
      const outcome = outcomes[index];
      if (outcome === undefined) left.push(one);
      else one.resolve(outcome);
    }
    await Promise.all(left.map(runAlone));
  }

  return (member) =>
    new Promise((resolve, reject) => {
      waiting.push({ member, key: keyOf(member), resolve, reject });
      start();
    });
}
