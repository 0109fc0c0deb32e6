/** Collects unreachable objects, and lets the event loop run their finalizers. */
export async function collectGarbage(): Promise<void> {
  for (let time = 0; time < 5; time++) {
    Bun.gc(true);
    await Bun.sleep(2);
  }
}
