/**
 * The standard error of a child process, without the line in which Metal's validation layer announces itself
 * (`METAL_DEVICE_WRAPPER_TYPE=1`, on macOS).
 */
export const withoutAnnouncement = (text: string): string =>
  text
    .split("\n")
    .filter((line) => !/Metal (API|GPU) Validation Enabled/.test(line))
    .join("\n");
