/** Makes text from models and files safe to print on a terminal. */

/**
 * Escapes control characters, such as `\x1b`, which could move the cursor, rename the window, or make the terminal send
 * input. Tabs and line breaks stay.
 */
export const printable = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: this function escapes them
  text.replace(/\r(?!\n)|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  });
