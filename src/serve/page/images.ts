/** The images of the next message: dropped on the page, pasted, or chosen as files. */
const list = document.getElementById("images") as HTMLElement;
const chooser = document.getElementById("file") as HTMLInputElement;
let waiting: readonly string[] = [];

/** Returns the waiting images as data URLs, and removes them. */
export function takeImages(): readonly string[] {
  const taken = waiting;
  set([]);
  return taken;
}

function set(urls: readonly string[]): void {
  waiting = urls;
  list.replaceChildren(...urls.map(removable));
}

/** Returns a button that shows an image, and removes it. */
function removable(url: string): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("aria-label", "Remove image");
  button.append(pictureOf(url));
  button.addEventListener("click", () => set(waiting.filter((each) => each !== url)));
  return button;
}

export function pictureOf(url: string): HTMLImageElement {
  const image = document.createElement("img");
  image.src = url;
  image.alt = "";
  return image;
}

async function add(files: Iterable<File>): Promise<void> {
  const images = [...files].filter(({ type }) => type.startsWith("image/"));
  const urls = await Promise.all(images.map(urlOf));
  set([...new Set([...waiting, ...urls])]);
}

function urlOf(file: File): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const reader = new FileReader();
  reader.addEventListener("load", () => resolve(reader.result as string));
  reader.addEventListener("error", () => reject(reader.error));
  reader.readAsDataURL(file);
  return promise;
}

/** Accepts images from now on. @param failed is called with the error of a file that can't be read */
export function acceptImages(failed: (error: unknown) => void): void {
  const take = (files: Iterable<File>) => void add(files).catch(failed);
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    take(event.dataTransfer?.files ?? []);
  });
  document.addEventListener("paste", (event) => take(event.clipboardData?.files ?? []));
  chooser.addEventListener("change", () => {
    take(chooser.files ?? []);
    chooser.value = "";
  });
}
