import XCTest

/// Runs a test of this program again in a separate process.
final class ChildTest {
    private static let variable = "ORCHARD_CHILD_TEST"

    /// The argument from the parent process; nil if this is not a child.
    static var argument: String? { ProcessInfo.processInfo.environment[variable] }

    private let process = Process()
    private let pipe = Pipe()

    init(_ test: String, argument: String) throws {
        process.executableURL = URL(fileURLWithPath: ProcessInfo.processInfo.arguments[0])
        #if os(Linux)
        process.arguments = ["OrchardMetalTests.\(test)"]
        #else
        process.arguments = ["-XCTest", "OrchardMetalTests.\(test)", Bundle(for: Self.self).bundlePath]
        #endif
        process.environment = ProcessInfo.processInfo.environment.merging([Self.variable: argument]) { $1 }
        process.standardOutput = pipe
        try process.run()
    }

    /// Returns false if the child had to be killed.
    func ends(within seconds: TimeInterval) -> Bool {
        let deadline = Date(timeIntervalSinceNow: seconds)
        while process.isRunning, Date() < deadline { usleep(10_000) }
        guard process.isRunning else { return true }
        process.terminate()
        return false
    }

    lazy var output = String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self)

    var endedWell: Bool { process.terminationReason == .exit && process.terminationStatus == 0 }
}
