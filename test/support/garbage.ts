/** Collects what nothing names any more, and lets its finalizers run: they are tasks of the event loop. */
export async function collectGarbage(): Promise<void> {
  for (let time = 0; time < 5; time++) {
    Bun.gc(true);
    await Bun.sleep(2);
  }
}
