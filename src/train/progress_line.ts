/** The progress line of a run. */
import { BAR_IMPORTANCE, fittedLine } from "../core/fitted_line.ts";

/** The values that the line shows in addition to the bar and the steps. */
export interface Figures {
  /** The loss with its name or unit. */
  readonly loss: string;
  readonly heldOut: string;
  readonly speed: string;
  readonly left: string;
  readonly memory: string;
  readonly backend: string;
}

/** The fields in display order. */
const fields: readonly { readonly importance: number; readonly of: (figures: Figures) => string }[] = [
  { importance: 6, of: ({ loss }) => loss },
  { importance: BAR_IMPORTANCE, of: ({ heldOut }) => `held out ${heldOut}` },
  { importance: 3, of: ({ speed }) => `${speed} tokens/s` },
  { importance: 5, of: ({ left }) => `${left} left` },
  { importance: 2, of: ({ memory }) => memory },
  { importance: 1, of: ({ backend }) => backend },
];

/**
 * Returns a line of at most `width` columns: a bar, the steps, and as many figures as fit, the most important ones
 * first.
 *
 * @example progressLine(80, 10, 400, figures); // "█░░░░░░░░░░░░░░░░░░░ 10/400 │ loss 2.310 │ …"
 */
export const progressLine = (width: number, step: number, total: number, figures: Figures): string =>
  fittedLine(
    width,
    step,
    total,
    fields.map(({ importance, of }) => ({ importance, text: of(figures) })),
  );
