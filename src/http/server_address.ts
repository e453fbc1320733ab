/** The address of a server. */
export interface ServerAddress {
  hostname: string;
  /** The IP address to connect to, where it is known already: the name is not resolved again. */
  address?: string;
  port: number;
  secure: boolean;
  /** For whom its name is looked up: a project; absent: the operator. */
  owner?: string;
}
