/** Edges of a directed graph: the successors of each node. */
export type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/** Returns the graph of some edges. */
export function graphOf(edges: Iterable<readonly [from: string, to: string]>): Graph {
  const graph = new Map<string, Set<string>>();
  for (const [from, to] of edges) {
    const known = graph.get(from);
    if (known) known.add(to);
    else graph.set(from, new Set([to]));
  }
  return graph;
}

/** Whether an edge is of the kind that a reported cycle must contain. */
export type EdgePredicate = (from: string, to: string) => boolean;

/**
 * Returns a shortest cycle for each strongly connected component with an edge of the requested kind, beginning with
 * that edge. Source of the components: Tarjan, "Depth-first search and linear graph algorithms", 1972.
 */
export function cyclesIn(graph: Graph, isWanted: EdgePredicate = () => true): string[][] {
  return componentsOf(graph).flatMap((component) => {
    const members = new Set(component);
    for (const from of component.toSorted())
      for (const to of graph.get(from) ?? [])
        if (members.has(to) && isWanted(from, to)) return [[from, ...shortestPath(graph, members, to, from)]];
    return [];
  });
}

function componentsOf(graph: Graph): string[][] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const isOpen = new Set<string>();
  const components: string[][] = [];
  const visit = (node: string): void => {
    order.set(node, order.size);
    lowest.set(node, order.get(node)!);
    stack.push(node);
    isOpen.add(node);
    for (const next of graph.get(node) ?? []) {
      if (!order.has(next)) visit(next);
      if (isOpen.has(next)) lowest.set(node, Math.min(lowest.get(node)!, lowest.get(next)!));
    }
    if (lowest.get(node) !== order.get(node)) return;
    const component = stack.splice(stack.indexOf(node));
    for (const member of component) isOpen.delete(member);
    components.push(component);
  };
  for (const node of graph.keys()) if (!order.has(node)) visit(node);
  return components;
}

/** Searches breadth first within one component, in which every node reaches every other. */
function shortestPath(graph: Graph, members: ReadonlySet<string>, start: string, end: string): string[] {
  const paths: string[][] = [[start]];
  const seen = new Set([start]);
  for (const path of paths) {
    if (path.at(-1) === end) return path;
    for (const next of graph.get(path.at(-1)!) ?? []) {
      if (!members.has(next) || seen.has(next)) continue;
      seen.add(next);
      paths.push([...path, next]);
    }
  }
  throw new Error(`found no path from ${start} to ${end}, which are in one cycle`);
}
