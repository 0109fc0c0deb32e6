// Apple's module of the log store re-exports the loggers, which is what programs import it for.
@_exported import Orchardos
