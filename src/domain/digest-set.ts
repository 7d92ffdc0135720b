// Digests that were seen, in 16 bytes each: a set of a million strings would take ten times as much.

const words = 4;
const maxLoad = 0.6;

export class DigestSet {
  #capacity = 1024;
  #slots = new Uint32Array(this.#capacity * words);
  #size = 0;

  /**
   * @param digest at least 16 bytes that no hand chose; the first 16 count
   * @returns false where it was there already
   */
  add(digest: Uint8Array): boolean {
    const view = new DataView(digest.buffer, digest.byteOffset, 16);
    const added = this.#put([0, 4, 8, 12].map((at) => view.getUint32(at)));
    if (added) this.#size += 1;
    if (this.#size > this.#capacity * maxLoad) this.#grow();
    return added;
  }

  /** A slot of zeros is free: no SHA-256 that anybody has seen begins with 128 of them. */
  #put(digest: readonly number[]): boolean {
    for (let slot = (digest[0] ?? 0) % this.#capacity; ; slot = (slot + 1) % this.#capacity) {
      const at = slot * words;
      if (digest.every((word, index) => this.#slots[at + index] === word)) return false;
      if (this.#slots.subarray(at, at + words).every((word) => word === 0)) {
        this.#slots.set(digest, at);
        return true;
      }
    }
  }

  #grow(): void {
    const old = this.#slots;
    this.#capacity *= 2;
    this.#slots = new Uint32Array(this.#capacity * words);
    for (let at = 0; at < old.length; at += words) {
      const digest = [...old.subarray(at, at + words)];
      if (digest.some((word) => word !== 0)) this.#put(digest);
    }
  }
}
