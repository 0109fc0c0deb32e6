/** The backends, the fastest first: the order in which a call falls through them. */
export const backendNames = ["metal", "cpu", "reference"] as const;
export type BackendName = (typeof backendNames)[number];
