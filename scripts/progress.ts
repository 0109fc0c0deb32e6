import ora from "ora";

/** Shows the progress of `body`: a spinner on a terminal; elsewhere a line for each new step, without percentages. */
export async function withSpinner<Result>(
  what: string,
  body: (progress: (text: string) => void) => Promise<Result>,
): Promise<Result> {
  const start = performance.now();
  // In a terminal with no columns, as in some containers, the spinner would clear lines forever.
  const isAnimated = process.stderr.isTTY && process.stderr.columns > 0;
  const spinner = ora({ text: what, discardStdin: false, ...(isAnimated ? {} : { isEnabled: false }) }).start();
  let step = "";
  const progress = (text: string) => {
    spinner.text = text;
    const next = text.replace(/:.*/, "");
    if (!isAnimated && next !== step) console.error(`  ${text}`);
    step = next;
  };
  try {
    const result = await body(progress);
    spinner.succeed(`${what} (${((performance.now() - start) / 1000).toFixed(1)} s)`);
    return result;
  } catch (error) {
    spinner.fail(what);
    throw error;
  }
}
