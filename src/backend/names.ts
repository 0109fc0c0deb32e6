/** The backends, the fastest first: the order in which a call falls through them. */
export const backendNames = ["metal", "cpu", "reference"] as const;
/** `"metal"`, `"cpu"` or `"reference"`. */
export type BackendName = (typeof backendNames)[number];
