/** How the random name of an erased user begins. */
export const pseudonymStart = "forgotten_";
