import { availableParallelism } from "node:os";

/**
 * Runs the work for each item, with at most `atOnce` in parallel (default: the number of processors). Stops at the
 * first failure.
 */
export async function inParallel<Item>(
  items: Iterable<Item>,
  work: (item: Item) => Promise<void>,
  atOnce: number = availableParallelism(),
): Promise<void> {
  const queue = [...items];
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
