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
  'seaweedAdminGrpc',
] as const;
export type PortName = (typeof portNames)[number];
