/** Collects unreachable objects, and lets their finalizers run: they are tasks of the event loop. */
export async function collectGarbage(): Promise<void> {
  for (let time = 0; time < 5; time++) {
    Bun.gc(true);
    await Bun.sleep(2);
  }
}
