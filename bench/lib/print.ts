/** Numbers as benchmarks print them. */

export const whole = (value: number): string => Math.round(value).toLocaleString('en')
