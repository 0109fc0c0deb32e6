/** Images in folders, one folder per class. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { DataError } from "../../core/errors.ts";
import { aFunction, aPath } from "../../core/kinds.ts";
import { named, operand, parameters } from "../../core/parameters.ts";
import { withFileErrors } from "../../io/file_errors.ts";
import { endingOf, readEndings } from "../../io/image/format.ts";
import { type LoadImageOptions, loadImage, loading } from "../../io/image/load.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { checkIndex, type Dataset, type ItemContext } from "../loader/items.ts";

/** Options of {@link ImageFolder}: how images are read and transformed. */
export interface ImageFolderOptions extends LoadImageOptions {
  /** The function applied to each image, such as a transform of `data.transforms`. */
  transform?: ((image: Tensor, context: ItemContext) => Tensor | Promise<Tensor>) | undefined;
}

/**
 * A data set of the images in a folder with one subfolder per class, such as `cats` and `dogs`, as PyTorch's
 * `ImageFolder`. Item i is an image, uint8 [channels, height, width] unless a transform changes it, and the number of
 * its class, a bigint. Classes and the images of each class are sorted by name. A class may have nested folders. Files
 * of other formats, names that begin with a dot, and links to folders inside a class are skipped.
 *
 * @example
 * const set = new data.ImageFolder("pets", { transform: data.transforms.resize([64, 64]) });
 * for await (const [x, y] of new data.DataLoader(set, { batchSize: 32, shuffle: true })) train(x, y);
 *
 * @throws {FileError} if the folder can't be read. @throws {DataError} `noImages` if a class has no images, or there is
 * no class.
 */
export class ImageFolder implements Dataset<[image: Tensor, label: bigint]> {
  /** The names of the classes, indexed by class number. */
  readonly classes: readonly string[];
  /** The path and the class number of each image. */
  readonly samples: readonly (readonly [path: string, label: number])[];
  readonly #options: Omit<ReturnType<typeof folderParameters>, "root" | "transform">;
  readonly #transform: ImageFolderOptions["transform"];

  constructor(root: string, options?: ImageFolderOptions);
  constructor(...values: unknown[]) {
    const { root, transform, ...options } = folderParameters(values);
    this.classes = classesOf(root);
    this.samples = this.classes.flatMap((name, label) =>
      picturesOf(join(root, name)).map((path) => [path, label] as const),
    );
    this.#options = options;
    this.#transform = transform as ImageFolderOptions["transform"];
  }

  get length(): number {
    return this.samples.length;
  }

  /** Returns an image and the number of its class. @throws the same errors as {@link io.loadImage}. */
  async get(
    index: number,
    context: ItemContext = { epoch: 0, seed: BigInt(index) },
  ): Promise<[image: Tensor, label: bigint]> {
    checkIndex("ImageFolder.get", index, this.length);
    const [path, label] = this.samples[index];
    const image = await loadImage(path, this.#options);
    return [this.#transform ? await this.#transform(image, context) : image, BigInt(label)];
  }
}
const folderParameters = parameters("ImageFolder", {
  root: operand(aPath),
  ...loading,
  transform: named(aFunction<(image: unknown, context: ItemContext) => unknown>()),
});

/** Lists a folder by name. Links are marked, as a link to a folder may form a cycle. */
const listed = (folder: string) =>
  withFileErrors("ImageFolder", folder, () =>
    readdirSync(folder, { withFileTypes: true })
      .filter(({ name }) => !name.startsWith("."))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map((entry) => {
        const path = join(folder, entry.name);
        const target = entry.isSymbolicLink() ? statSync(path, { throwIfNoEntry: false }) : entry;
        const [isFile, isFolder] = [target?.isFile() === true, target?.isDirectory() === true];
        return { name: entry.name, path, isFile, isFolder, isLink: entry.isSymbolicLink() };
      }),
  );

function classesOf(root: string): string[] {
  const classes = listed(root).filter(({ isFolder }) => isFolder);
  if (classes.length > 0) return classes.map(({ name }) => name);
  throw new DataError("ImageFolder", "noImages", `expected ${root} to have a folder per class, got none`);
}

/** The paths of the images of a class, sorted by name. */
function picturesOf(folder: string): string[] {
  const found = picturesIn(folder);
  if (found.length > 0) return found;
  throw new DataError(
    "ImageFolder",
    "noImages",
    `expected ${folder} to have images (${readEndings.map((ending) => `.${ending}`).join(", ")}), got none`,
  );
}

const picturesIn = (folder: string): string[] =>
  listed(folder).flatMap(({ name, path, isFile, isFolder, isLink }) => {
    if (isFolder) return isLink ? [] : picturesIn(path);
    return isFile && readEndings.includes(endingOf(name)) ? [path] : [];
  });
