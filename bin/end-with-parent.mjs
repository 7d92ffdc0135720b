// Preloaded by run.mjs: when that process dies, even by SIGKILL, this one is asked to stop in order and is
// ended when it does not. The channel between them says so: it closes with its other end.
const graceMs = 30_000;

process.channel?.unref();
process.on('disconnect', () => {
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), graceMs).unref();
  process.kill(process.pid, 'SIGTERM');
});
