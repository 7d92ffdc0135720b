import { dirname, join } from 'node:path';

export const checkout = dirname(import.meta.dirname);

/** A path of this checkout. */
export const inCheckout = (...parts: string[]): string => join(checkout, ...parts);
