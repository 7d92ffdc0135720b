// What most routes have in common: who may use them, and an id in their path.
import { z } from 'zod';

export const viewer = { config: { access: 'viewer' as const } };
export const operator = { config: { access: 'operator' as const } };
export const admin = { config: { access: 'admin' as const } };
export const byId = z.object({ id: z.string().max(64) });
