/** The body of a response, chunk by chunk; nothing where there is none. */
export function bytesOf(response: Response): AsyncIterable<Uint8Array> {
  return (response.body ?? new Blob([]).stream()) as AsyncIterable<Uint8Array>;
}
