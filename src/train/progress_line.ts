/** The line of progress, fitted to the width of a terminal. */

/** What the line shows besides the bar and the steps. */
export interface Figures {
  /** With its name or unit. */
  readonly loss: string;
  readonly heldOut: string;
  readonly speed: string;
  readonly left: string;
  readonly memory: string;
  readonly backend: string;
}

const SEPARATOR = " │ ";
const [MIN_BAR, MAX_BAR] = [6, 20];
/** The bar itself gives way after figures that matter less. */
const BAR_IMPORTANCE = 4;

/** In the order in which they are shown. What matters least gives way first where the line is too long. */
const fields: readonly { readonly importance: number; readonly of: (figures: Figures) => string }[] = [
  { importance: 6, of: ({ loss }) => loss },
  { importance: 4, of: ({ heldOut }) => `held out ${heldOut}` },
  { importance: 3, of: ({ speed }) => `${speed} tokens/s` },
  { importance: 5, of: ({ left }) => `${left} left` },
  { importance: 2, of: ({ memory }) => memory },
  { importance: 1, of: ({ backend }) => backend },
];

/**
 * A line of at most `width` columns: a bar, the steps, and as many figures as there is room for, the most important
 * ones first.
 *
 * @example progressLine(80, 10, 400, figures); // "█░░░░░░░░░░░░░░░░░░░ 10/400 │ loss 2.310 │ …"
 */
export function progressLine(width: number, step: number, total: number, figures: Figures): string {
  const count = `${step}/${total}`;
  const texts = fields.map(({ importance, of }) => ({ importance, text: of(figures) }));
  let room = width - count.length;
  const shown = new Set<string>();
  for (const { importance, text } of texts.toSorted((a, b) => b.importance - a.importance)) {
    const needed = SEPARATOR.length + text.length;
    if (needed > room - (importance < BAR_IMPORTANCE ? MIN_BAR + 1 : 0)) break;
    shown.add(text);
    room -= needed;
  }
  const bar = room > MIN_BAR ? `${drawBar(Math.min(MAX_BAR, room - 1), step / total)} ` : "";
  return [`${bar}${count}`, ...texts.flatMap(({ text }) => (shown.has(text) ? text : []))].join(SEPARATOR);
}

function drawBar(length: number, fraction: number): string {
  const full = Math.round(length * Math.min(1, Math.max(0, fraction)));
  return "█".repeat(full) + "░".repeat(length - full);
}
