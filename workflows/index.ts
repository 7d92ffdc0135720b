// The only entry of the workflow bundle.
export { maintenance } from './maintenance.ts';
export { scan } from './scan.ts';
