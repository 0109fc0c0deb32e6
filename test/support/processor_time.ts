/**
 * Seconds of processor time that a body takes, of all threads of the process. Unlike the time of day it hardly grows
 * while other programs want the processors, so that a test may bound it.
 */
export function processorSeconds(body: () => void): number {
  const before = process.cpuUsage();
  body();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}
