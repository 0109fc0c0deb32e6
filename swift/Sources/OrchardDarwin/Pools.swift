/// Reference counting on Linux uses no autorelease pools, so there is nothing to drain. A Mac's Foundation exports it.
public func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result { try body() }
