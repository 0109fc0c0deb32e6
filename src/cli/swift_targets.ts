/**
 * Finds targets of Swift packages that cannot be built on Linux, since they import frameworks that exist only on
 * Apple's systems.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Apple's frameworks for screens, media and devices that have no module on Linux. */
const absent = new Set(
  `AppKit ARKit AVFAudio AVFoundation AVKit AudioToolbox BackgroundTasks Charts Cocoa Combine Contacts CoreAudio
  CoreBluetooth CoreData CoreHaptics CoreImage CoreLocation CoreMedia CoreML CoreMotion CoreText CryptoKit
  GameController GameKit GameplayKit GLKit MapKit MetalFX ModelIO NaturalLanguage Network Photos
  PhotosUI Quartz QuickLook RealityKit ReplayKit SceneKit ScreenCaptureKit Security SpriteKit SwiftData SwiftUI UIKit
  UserNotifications VideoToolbox Vision WatchKit WebKit WidgetKit`.split(/\s+/),
);

const importLine = /^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:internal|package|private|public)\s+)?import\s+(?:\w+\s+)?(\w+)/;

/**
 * SwiftUI's names that only drawing code uses. Orchard has only SwiftUI's colors (swift/Sources/OrchardSwiftUI), which
 * compute packages pass to kernels.
 */
const drawing = new RegExp(
  String.raw`\b(?:Alignment|Angle|Animation|App|AppStorage|Binding|Bindable|Canvas|Edge|Environment|Font|Gesture` +
    "|Image|ObservedObject|Path|PreviewProvider|Scene|Shape|State|StateObject|Text|View|ViewModifier" +
    String.raw`|\w+Representable)\b`,
);

const comments = /\/\/.*|\/\*[\s\S]*?\*\//g;

/** Whether a file that imports SwiftUI uses only its colors. */
const usesOnlyColors = (source: string): boolean => !drawing.test(source.replace(comments, ""));

/** Returns the absent frameworks that a file imports without an `#if` around the import, in the order of its lines. */
export function absentImports(source: string): string[] {
  const names = new Set<string>();
  let depth = 0;
  for (const line of source.split("\n")) {
    if (/^\s*#if\b/.test(line)) depth++;
    else if (/^\s*#endif\b/.test(line)) depth--;
    else if (depth === 0) {
      const name = importLine.exec(line)?.[1];
      if (name === undefined || !absent.has(name)) continue;
      if (name !== "SwiftUI" || !usesOnlyColors(source)) names.add(name);
    }
  }
  return [...names];
}

/** Whether a Swift file in a package's folder imports an absent framework. Folders of builds are not searched. */
export function mayLeaveOut(folder: string): boolean {
  for (const name of new Bun.Glob("**/*.swift").scanSync(folder))
    if (absentImports(readFileSync(join(folder, name), "utf8")).length) return true;
  return false;
}

/** A target, as `swift package describe --type json` describes it. */
export type Target = {
  readonly name: string;
  readonly type: string;
  readonly path: string;
  readonly sources: readonly string[];
  readonly target_dependencies?: readonly string[];
  readonly product_dependencies?: readonly string[];
};

/** The targets of a package: those to build, and why the others are left out. */
export type Choice = { readonly kept: readonly Target[]; readonly reasons: ReadonlyMap<string, string> };

/** Leaves out the targets that import an absent framework, and the targets that depend on these. */
export function chooseTargets(targets: readonly Target[], folder: string): Choice {
  const reasons = new Map<string, string>();
  const own = new Set(targets.flatMap(({ name, product_dependencies: others = [] }) => [name, ...others]));
  for (const target of targets) {
    const files = target.sources.map((name) => join(folder, target.path, name)).filter((file) => existsSync(file));
    const imported = files.flatMap((file) => absentImports(readFileSync(file, "utf8")));
    const names = [...new Set(imported)].filter((name) => !own.has(name)).sort();
    if (names.length) reasons.set(target.name, `imports ${names.join(", ")}`);
  }
  for (let count = -1; count < reasons.size; ) {
    count = reasons.size;
    for (const { name, target_dependencies: needed = [] } of targets) {
      const lacking = needed.find((other) => reasons.has(other));
      if (lacking !== undefined && !reasons.has(name)) reasons.set(name, `depends on ${lacking}`);
    }
  }
  return { kept: targets.filter((target) => !reasons.has(target.name)), reasons };
}

/** Returns the kept libraries and executables that no other kept one depends on. Building these builds all of them. */
export function roots({ kept }: Choice): string[] {
  const built = kept.filter(({ type }) => type === "executable" || type === "library");
  const needed = new Set(built.flatMap((target) => target.target_dependencies ?? []));
  return built.map(({ name }) => name).filter((name) => !needed.has(name));
}

/** Returns the names of some targets of a package and of all targets that they depend on. */
export function withDependencies(some: readonly Target[], targets: readonly Target[]): ReadonlySet<string> {
  const names = new Set(some.map(({ name }) => name));
  // A set iterates over the names that are added during the iteration.
  for (const name of names)
    for (const needed of targets.find((target) => target.name === name)?.target_dependencies ?? []) names.add(needed);
  return names;
}
