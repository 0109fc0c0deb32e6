/// The number of times that Apple's device would have compiled a function for a pipeline or an archive: once whenever
/// no archive of the descriptor contains the function. This device compiles a function only once.
enum PipelineCompilations {
    private static let counter = Guarded(0)

    static var count: Int { counter.withLock { $0 } }

    static func add() { counter.withLock { $0 += 1 } }
}
