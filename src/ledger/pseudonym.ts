/** How the random name of an erased user begins. */
export const pseudonymStart = "forgotten_";

/** Whether a user's name is that of somebody who was erased. */
export function isPseudonym(user: string): boolean {
  return user.startsWith(pseudonymStart);
}
