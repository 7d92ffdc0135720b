/** Every port a stack listens on; all on loopback, remembered by these names. `claim` keeps the block for the stack. */
export const portNames = [
  'claim',
  'postgres',
  'amqp',
  'erlangMapper',
  'erlangDistribution',
  'temporalFrontend',
  'temporalHttp',
  'temporalMetrics',
  'temporalUi',
  's3',
  's3Grpc',
  'seaweedMaster',
  'seaweedMasterGrpc',
  'seaweedVolume',
  'seaweedVolumeGrpc',
  'seaweedFiler',
  'seaweedFilerGrpc',
  'seaweedAdmin',
] as const;
export type PortName = (typeof portNames)[number];

/**
 * SeaweedFS's own worker looks for the admin server's gRPC at this distance from its port, whatever was configured; so it
 * is put there, and both have to be free.
 */
export const seaweedAdminGrpcDistance = 10_000;
export const derivedPorts: Partial<Record<PortName, number>> = { seaweedAdmin: seaweedAdminGrpcDistance };
