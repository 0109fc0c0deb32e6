/**
 * Measures the seconds of processor time of a function, over all threads of the process. Unlike wall time it hardly
 * grows while other programs use the processors, so a test may bound it.
 */
export function processorSeconds(body: () => void): number {
  const before = process.cpuUsage();
  body();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}
