/** Settings: parsers that carry the name and the meaning of their variable. */
import type { Parser } from './parsers.ts'

export type Setting<T = unknown> = Parser<T> & {
  readonly variable: string
  readonly help: string
  readonly secret: boolean
}

export type SettingTree = { readonly [name: string]: Setting | SettingTree }
export type Values<T> = T extends Setting<infer Value> ? Value : { readonly [Name in keyof T]: Values<T[Name]> }

export function setting<T>(variable: string, parser: Parser<T>, help: string): Setting<T> {
  return { ...parser, variable, help, secret: false }
}

/** Declares a setting whose text appears in no message. */
export function secret<T>(variable: string, parser: Parser<T>, help: string): Setting<T> {
  return { ...setting(variable, parser, help), secret: true }
}

/** Returns a tree of the form of `tree` with `leaf` of each setting in it. */
export function mapSettings<T extends SettingTree>(tree: T, leaf: (setting: Setting) => unknown): Values<T> {
  const mapped = Object.entries(tree).map(([name, node]) => [
    name,
    isSetting(node) ? leaf(node) : mapSettings(node, leaf),
  ])
  return Object.fromEntries(mapped) as Values<T>
}

function isSetting(node: Setting | SettingTree): node is Setting {
  return typeof node['parse'] === 'function'
}
