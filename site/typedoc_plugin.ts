/** A TypeDoc plugin: files of the API's pages, names of dtypes and errors in them, and descriptions of namespaces. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Application,
  Comment,
  type CommentTag,
  type Context,
  Converter,
  type DeclarationReflection,
  LiteralType,
  type ProjectReflection,
  ReferenceType,
  type Reflection,
  ReflectionKind,
  type SomeType,
  UnionType,
} from "typedoc";
import { type MarkdownPageEvent, MarkdownTheme, MarkdownThemeContext, MemberRouter } from "typedoc-plugin-markdown";

/** VitePress ignores case and serves `Index.md` as the page of its folder, so the type `Index` needs another file. */
class PageRouter extends MemberRouter {
  override getIdealBaseName(reflection: Reflection): string {
    const path = super.getIdealBaseName(reflection);
    const isOfFolder = reflection.kindOf(ReflectionKind.Module | ReflectionKind.Namespace);
    return isOfFolder ? path : path.replace(/(?:^|\/)index$/i, "$&-page");
  }
}

/** Types that the compiler expands, but that a page should show by name. The largest is first. */
const named = ["DType", "IntegerDType", "FloatDType"];

/** The strings that a type allows, through the names in it; undefined if it allows anything else. */
function stringsOf(type: SomeType | undefined): string[] | undefined {
  if (type instanceof LiteralType && typeof type.value === "string") return [type.value];
  if (type instanceof ReferenceType) return stringsOf((type.reflection as DeclarationReflection | undefined)?.type);
  if (!(type instanceof UnionType)) return undefined;
  const parts = type.types.map(stringsOf);
  return parts.every((part) => part !== undefined) ? parts.flat() : undefined;
}

/** Returns the union with a name in place of its strings. */
function withNames(union: UnionType, project: ProjectReflection): UnionType {
  let { types } = union;
  for (const name of named) {
    const alias = project.getChildByName(name) as DeclarationReflection | undefined;
    const strings = stringsOf(alias?.type);
    if (!alias || !strings || alias.type === union) continue;
    const isOne = (type: SomeType) => type instanceof LiteralType && strings.includes(String(type.value));
    if (types.filter(isOne).length < strings.length) continue;
    const reference = ReferenceType.createResolvedReference(name, alias, project);
    types = [reference, ...types.filter((type) => !isOne(type))];
  }
  return new UnionType(types);
}

class NamingContext extends MarkdownThemeContext {
  constructor(...[theme, page, options]: ConstructorParameters<typeof MarkdownThemeContext>) {
    super(theme, page, options);
    const { unionType } = this.partials;
    this.partials = { ...this.partials, unionType: (union) => unionType(withNames(union, page.project)) };
  }
}

class NamingTheme extends MarkdownTheme {
  override getRenderContext(page: MarkdownPageEvent<Reflection>): MarkdownThemeContext {
    return new NamingContext(this, page, this.application.options);
  }
}

/** A namespace is `src/<name>/index.ts`, whose first comment describes it. */
function describeNamespaces({ project }: Context): void {
  for (const namespace of project.getChildrenByKind(ReflectionKind.Namespace)) {
    const source = readFileSync(join(import.meta.dirname, "..", "src", namespace.name, "index.ts"), "utf8");
    const [, text] = /^\/\*\*\s*([\s\S]*?)\s*\*\//.exec(source) ?? [];
    if (!text)
      throw new Error(`src/${namespace.name}/index.ts does not begin with a comment that describes the namespace.`);
    const description = text.replace(/\s*Exported as `\w+`\./, "").replace(/\n \* ?/g, "\n");
    namespace.comment = new Comment([{ kind: "text", text: description }]);
  }
}

/** Adds the error of `@throws {ShapeError} if …` to the tag's text, since the Markdown omits types of tags. */
function nameErrors({ project }: Context): void {
  const done = new Set<CommentTag>(); // reflections may share a comment
  for (const { comment } of Object.values(project.reflections))
    for (const tag of comment?.blockTags ?? []) {
      const name = tag.typeAnnotation?.replace(/^\{|\}$/g, "");
      if (!name || done.has(tag)) continue;
      done.add(tag);
      const target = project.getChildByName(name);
      const named = target
        ? ({ kind: "inline-tag", tag: "@link", text: name, target } as const)
        : ({ kind: "code", text: `\`${name}\`` } as const);
      tag.content.unshift(named, { kind: "text", text: " " });
    }
}

export function load(app: Application): void {
  app.renderer.defineRouter("page", PageRouter);
  app.renderer.defineTheme("named", NamingTheme);
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, describeNamespaces);
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, nameErrors);
}
