// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC721} from "@openzeppelin/contracts/token/ERC721/ERC721.sol";
import {ERC721URIStorage} from "@openzeppelin/contracts/token/ERC721/extensions/ERC721URIStorage.sol";

/// The Identity registry of ERC-8004 for a local chain: fixed code, and only what is used there. The first agent is 0.
/// Left out: metadata other than the wallet, and setting a wallet by signature.
contract AgentIdentity is ERC721URIStorage {
    string private constant WALLET_KEY = "agentWallet";

    uint256 private _nextId;
    mapping(uint256 agentId => address) private _walletOf;

    event Registered(uint256 indexed agentId, string agentURI, address indexed owner);
    event URIUpdated(uint256 indexed agentId, string newURI, address indexed updatedBy);
    event MetadataSet(
        uint256 indexed agentId, string indexed indexedMetadataKey, string metadataKey, bytes metadataValue
    );

    constructor() ERC721("AgentIdentity", "AGENT") {}

    function register() external returns (uint256 agentId) {
        return _register("");
    }

    function register(string calldata agentURI) external returns (uint256 agentId) {
        return _register(agentURI);
    }

    function setAgentURI(uint256 agentId, string calldata newURI) external {
        _checkAuthorized(ownerOf(agentId), msg.sender, agentId);
        _setTokenURI(agentId, newURI);
        emit URIUpdated(agentId, newURI, msg.sender);
    }

    /// Returns the account that is paid for the agent. It is its owner at first; zero after it was unset, or after a transfer.
    function getAgentWallet(uint256 agentId) external view returns (address) {
        _requireOwned(agentId);
        return _walletOf[agentId];
    }

    function unsetAgentWallet(uint256 agentId) external {
        _checkAuthorized(ownerOf(agentId), msg.sender, agentId);
        _setWallet(agentId, address(0));
    }

    function _register(string memory agentURI) private returns (uint256 agentId) {
        agentId = _nextId++;
        _safeMint(msg.sender, agentId);
        _setWallet(agentId, msg.sender);
        if (bytes(agentURI).length > 0) _setTokenURI(agentId, agentURI);
        emit Registered(agentId, agentURI, msg.sender);
    }

    function _setWallet(uint256 agentId, address wallet) private {
        _walletOf[agentId] = wallet;
        emit MetadataSet(agentId, WALLET_KEY, WALLET_KEY, wallet == address(0) ? bytes("") : abi.encodePacked(wallet));
    }

    /// A wallet is the previous owner's word: it does not outlive a transfer.
    function _update(address to, uint256 agentId, address auth) internal override returns (address from) {
        from = super._update(to, agentId, auth);
        if (from != address(0)) _setWallet(agentId, address(0));
    }
}
