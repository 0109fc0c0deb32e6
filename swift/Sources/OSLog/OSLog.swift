// Apple's OSLog module re-exports the loggers; compute programs import it only for them.
@_exported import Orchardos
