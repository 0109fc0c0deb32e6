/** A plugin of TypeDoc: the files of the API's pages. */
import { type Application, type Reflection, ReflectionKind } from "typedoc";
import { MemberRouter } from "typedoc-plugin-markdown";

/** VitePress ignores case and serves `Index.md` as the page of its folder, so the type `Index` needs another file. */
class PageRouter extends MemberRouter {
  override getIdealBaseName(reflection: Reflection): string {
    const path = super.getIdealBaseName(reflection);
    const isOfFolder = reflection.kindOf(ReflectionKind.Module | ReflectionKind.Namespace);
    return isOfFolder ? path : path.replace(/(?:^|\/)index$/i, "$&-page");
  }
}

export function load(app: Application): void {
  app.renderer.defineRouter("page", PageRouter);
}
