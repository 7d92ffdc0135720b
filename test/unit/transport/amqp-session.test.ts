import { EventEmitter } from 'node:events';
import amqplib, { type ChannelModel } from 'amqplib';
import { createLogger } from '#sonar/platform/logger.ts';
import { createAmqpSession } from '#sonar/transport/amqp-session.ts';

afterEach(() => jest.restoreAllMocks());

// An `error` that nobody listens to ends the process.
test('a connection that arrives after the session was closed is heard until it is gone', async () => {
  const listeners: number[] = [];
  const connection = Object.assign(new EventEmitter(), {
    close: () => {
      listeners.push(connection.listenerCount('error'));
      connection.emit('error', new Error('reset'));
      return Promise.reject(new Error('reset'));
    },
  });
  const arrival = Promise.withResolvers<ChannelModel>();
  jest.spyOn(amqplib, 'connect').mockReturnValue(arrival.promise);
  const session = createAmqpSession('amqp://127.0.0.1/', createLogger('test', 'silent'));
  const opening = session.open();
  await session.close();
  arrival.resolve(connection as unknown as ChannelModel);
  await expect(opening).rejects.toMatchObject({ code: 'unreachable' });
  expect(listeners).toEqual([1]);
});
