/** Returns the form of a number: its base, its parts, and its suffix. */
export function literalForm(text: string): string {
  const digits = text.replaceAll("'", "");
  const separated = digits === text ? "" : " with '";
  const hexadecimal = /^0[xX]([\da-fA-F]*)(\.?)([\da-fA-F]*)(?:[pP]([-+]?)\d+)?(.*)$/.exec(digits);
  if (hexadecimal && /[pP.]/.test(digits)) return `hexadecimal float ${hexadecimal[5] || "without suffix"}${separated}`;
  if (hexadecimal) {
    const [, whole] = hexadecimal;
    const suffix = hexadecimal[5];
    return `hexadecimal ${whole.length > 8 ? "of 64 bits " : ""}${suffix || "without suffix"}${separated}`;
  }
  const binary = /^0[bB][01]+(.*)$/.exec(digits);
  if (binary) return `binary ${binary[1] || "without suffix"}${separated}`;
  const decimal = /^(\d*)(\.?)(\d*)(?:([eE])[-+]?\d+)?(.*)$/.exec(digits)!;
  const suffix = decimal[5] || "without suffix";
  if (decimal[2] || decimal[4]) {
    const shape = !decimal[2] ? "1e1" : decimal[1] === "" ? ".1" : decimal[3] === "" ? "1." : "1.1";
    return `float ${shape}${decimal[4] && decimal[2] ? "e1" : ""} ${suffix}${separated}`;
  }
  if (/^0\d+$/.test(decimal[1])) return `octal ${suffix}${separated}`;
  return `integer ${decimal[1].length > 9 ? "of 64 bits " : ""}${suffix}${separated}`;
}
