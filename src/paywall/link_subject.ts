/** The user and the project that a link is for. */
export interface LinkSubject {
  projectId: string;
  user: string;
}

/** A request for authorization: for whom, when, and its id. */
export interface AuthorizationLink extends LinkSubject {
  requestId: string;
  /** In ms. A decision invalidates every link created before it. */
  issuedAt: number;
}
