// The scope's verdict as one word.
import { checkTarget, type ParsedScope, parseScope } from '#sonar/domain/scope.ts';

export function scopeOf(allow: string[], deny: string[] = []): ParsedScope {
  const parsed = parseScope({ allow, deny });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.scope;
}

/** `allowed`, or the reason of the refusal. */
export function verdict(scope: ParsedScope, target: string): string {
  const check = checkTarget(scope, target);
  return check.kind === 'allowed' ? 'allowed' : check.reason;
}
