/// How many times Apple's device would have compiled a function for a pipeline or an archive: each time that no archive
/// of the descriptor contains it. This device compiles a function only once.
enum PipelineCompilations {
    private static let counter = Guarded(0)

    static var count: Int { counter.withLock { $0 } }

    static func add() { counter.withLock { $0 += 1 } }
}
