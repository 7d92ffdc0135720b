/** How long a transfer of `size` bytes may take before it is given up and begun anew: a minute and 64 bytes a ms. */
export function transferTimeoutMs(size: number): number {
  return Math.min(2 ** 31 - 1, 60_000 + Math.ceil(size / 64));
}
