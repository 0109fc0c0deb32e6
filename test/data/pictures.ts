/** A module for openWorkerDataset: pictures of a folder, changed at random. */
import { data } from "../../src/index.ts";

export default ({ folder }: { readonly folder: string }) =>
  new data.ImageFolder(folder, { mode: "gray", transform: (x, { seed }) => x.add(Number(seed % 97n)) });
