/** A module for openWorkerDataset: images of a folder with random changes. */
import { data } from "../../src/index.ts";

export default ({ folder }: { readonly folder: string }) =>
  new data.ImageFolder(folder, { mode: "gray", transform: (x, { seed }) => x.add(Number(seed % 97n)) });
