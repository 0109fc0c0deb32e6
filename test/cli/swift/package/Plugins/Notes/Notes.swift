import PackagePlugin
import os

/// Adds no command: it shows that a plugin may import what a program may.
@main
struct Notes: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let count = OSAllocatedUnfairLock(initialState: 0)
        count.withLock { $0 += target.directory.string.count }
        Logger(subsystem: "plugin", category: "notes").debug("\(count.withLock { $0 }) letters")
        return []
    }
}
