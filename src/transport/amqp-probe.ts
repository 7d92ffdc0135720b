import { connect } from 'amqplib';

/** Logs in to a broker's virtual host and leaves again; returns the broker's version. Throws when it is not served. */
export async function probeBroker(url: string): Promise<string> {
  const connection = await connect(url, { noDelay: true, timeout: 5_000 });
  // A connection that breaks after the answer is no fault of the probe; unheard, the event would end the process.
  connection.on('error', () => undefined);
  const { version } = connection.connection.serverProperties;
  await connection.close();
  return version;
}
