/// How many elements the program computes.
public let length = 100
