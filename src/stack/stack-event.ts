/** What happens to a service or a role, for a person to read as it happens. */
export interface StackEvent {
  /** A service, a role, or `stack` for what concerns them all. */
  service: string;
  state: 'downloading' | 'starting' | 'ready' | 'stopped' | 'external';
  detail?: string;
  /** Since its start began. */
  seconds?: number;
}
